"""Building a release: source archive, wheels, Debian packages, bill of materials, checksums."""
