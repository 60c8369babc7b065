"""Equations by what they are as MathML: which symbols they show, and whether one stands in a page."""
