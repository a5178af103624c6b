"""The five papers' evaluations as studies: parameters, grid, measures, checks and figures."""
