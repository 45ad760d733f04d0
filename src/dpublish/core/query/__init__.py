"""How releases answer queries; the language is in `data.query`."""
