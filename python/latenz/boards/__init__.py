"""Boards, emulated or real: what is put on them, how they are driven, and what they say."""
