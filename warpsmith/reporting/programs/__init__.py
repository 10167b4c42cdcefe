"""Pages of whole programs: trials, and the ledger of regions."""
