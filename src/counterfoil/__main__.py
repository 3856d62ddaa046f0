"""`python -m counterfoil` is the command line."""

from counterfoil.cli.main import main

main()
