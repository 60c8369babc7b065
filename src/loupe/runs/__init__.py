"""Run folders: records that survive a crash."""
