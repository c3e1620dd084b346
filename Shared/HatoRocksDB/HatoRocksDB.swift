/// The store of `HatoStorage` in one RocksDB folder.
