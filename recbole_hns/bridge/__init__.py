"""Everything that touches RecBole's insides."""
