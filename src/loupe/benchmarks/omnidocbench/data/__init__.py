"""The data of OmniDocBench as published: pages, ground truth, and files of answers."""
