"""Equations of answers, drawn and compared by where their symbols stand."""
