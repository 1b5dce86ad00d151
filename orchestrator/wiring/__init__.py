"""What the composition root puts together from settings, in parts."""
