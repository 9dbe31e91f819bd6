"""What a workflow is: its shape, and how it is read and checked."""
