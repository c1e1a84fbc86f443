"""What a consumer does with the records that it fetches."""
