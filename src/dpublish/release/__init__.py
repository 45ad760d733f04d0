"""What may be published: values with receipts. Everything after this gate is free."""
