"""Tests against real server programs: `script/test-servers` makes their environments and runs these; else skipped."""
