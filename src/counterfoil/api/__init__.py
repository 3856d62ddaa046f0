"""The public API: generated contract and thin mappings, no decisions."""
