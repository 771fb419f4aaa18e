"""How RecBole's models score and learn."""
