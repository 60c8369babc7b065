"""Support for `dp_bench`: page elements, plain text of answers, and the rules of each variant."""
