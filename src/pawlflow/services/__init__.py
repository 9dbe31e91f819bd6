"""Services: effects that are carried out elsewhere, and what they may ask the engine."""
