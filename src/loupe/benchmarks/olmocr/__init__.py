"""What olmOCR-Bench is made of: its records, the rules of each kind of test, its statistics and its folders."""
