"""Long jobs: cut into blocks, run here or on workers, saved on the way and resumed where they stopped."""
