"""Effects: what happens outside, after the commit that asked for it. Receipts come back."""
