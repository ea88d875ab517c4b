"""From files of a crawl to pages: WARC, Parquet, JSONL; decoding and addressing."""
