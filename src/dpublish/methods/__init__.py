"""The methods, one package each, named as the field names them."""
