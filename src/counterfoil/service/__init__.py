"""The application: what the engine and its adapters make together."""
