"""Self-contained pages that show a study's figures, claims and evidence without a network."""
