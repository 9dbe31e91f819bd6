"""What the shard does for system cells: times for schedules, outcomes for batches."""
