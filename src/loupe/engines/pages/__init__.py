"""Pages as the pictures that engines are given."""
