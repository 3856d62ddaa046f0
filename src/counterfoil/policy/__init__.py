"""Pure decisions: values in, a value out, no I/O."""
