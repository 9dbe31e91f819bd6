"""Values only: what is journalled, and its bytes."""
