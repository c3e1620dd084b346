// What RocksDB can do with a table and its C interface has no function for.

#include "CRocksDBTables.h"

#include <rocksdb/options.h>
#include <rocksdb/sst_file_reader.h>
#include <rocksdb/table.h>
#include <rocksdb/table_properties.h>

#include <cstring>
#include <exception>
#include <memory>
#include <string>

namespace {

rocksdb::Status check(const char *path, uint64_t &entries) {
    rocksdb::BlockBasedTableOptions table;
    table.no_block_cache = true;
    rocksdb::Options options;
    options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
    rocksdb::SstFileReader reader(options);
    rocksdb::Status status = reader.Open(path);
    if (!status.ok()) return status;
    if (const auto properties = reader.GetTableProperties()) entries = properties->num_entries;
    return reader.VerifyChecksum();
}

}  // namespace

uint64_t hato_check_table(const char *path, char **error) {
    uint64_t entries = 0;
    // No exception may get into the language that called.
    try {
        const rocksdb::Status status = check(path, entries);
        if (!status.ok()) *error = strdup(status.ToString().c_str());
    } catch (const std::exception &problem) {
        *error = strdup((std::string("IO error: ") + problem.what()).c_str());
    }
    return entries;
}
