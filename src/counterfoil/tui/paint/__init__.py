"""From entries to lines of a terminal: pure, and nothing that comes out is executed by a terminal."""
