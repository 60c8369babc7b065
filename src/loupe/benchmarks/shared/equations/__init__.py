"""Equations drawn by KaTeX in a browser that is shut off, how their symbols stand, and pictures of them for people."""
