"""Tables that people see: one record (`record`), and its writers for terminals and files."""
