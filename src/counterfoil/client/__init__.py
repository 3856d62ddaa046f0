"""The client: one typed interface to a service, wherever it runs."""
