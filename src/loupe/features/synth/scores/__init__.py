"""What an answer to a generated page is worth: text, values, tables, formulas, order, and yes or no."""
