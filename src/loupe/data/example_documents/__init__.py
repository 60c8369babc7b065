"""Made-up invoices and other papers of an office, drawn by rule: documents to try Loupe on, whose truth is known."""
