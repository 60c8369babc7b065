"""Text, formulas and tables in the spelling in which OmniDocBench compares them."""
