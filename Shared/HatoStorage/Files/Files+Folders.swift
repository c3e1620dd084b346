#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// Operations on whole folders: durable copies, atomic renames, removal.
extension Files {
    /// Copies the contents of `source`, except the names given, into the new folder `target`. All of it is on disk when
    /// this returns, readable by its owner only (0600, folders 0700).
    package static func copyFolder(_ source: String, to target: String, except: Set<String> = []) throws(StoreError) {
        for name in try names(in: source) where !except.contains(name) {
            let (from, to) = ("\(source)/\(name)", "\(target)/\(name)")
            if isFolder(from) {
                try createNewFolder(to)
                try copyFolder(from, to: to)
            } else {
                try copyFile(from, to: to)
            }
        }
        try syncFolder(of: target + "/.")
    }

    /// Its bytes are on disk when this returns; its name not yet.
    package static func copyFile(_ source: String, to target: String) throws(StoreError) {
        let (from, to) = (try OpenFile(source, access: .read), try OpenFile(target, access: .createEmpty))
        var buffer = [UInt8](repeating: 0, count: 1 << 20)
        var offset = 0
        while true {
            let count = try from.read(into: &buffer)
            if count == 0 { return try to.sync() }
            try to.write(buffer.span.extracting(0..<count), at: offset)
            offset += count
        }
    }

    /// Renames a folder durably; returns false, and does nothing, when something other than an empty folder has the
    /// name.
    package static func renameFolder(_ path: String, to target: String) throws(StoreError) -> Bool {
        if rename(path, target) != 0 {
            if errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR { return false }
            throw failure("rename", path)
        }
        try syncFolder(of: target)
        return true
    }

    /// Moves a folder to a name that does not exist yet. To another disk it is copied: then all of the copy is on disk
    /// when this returns, and the source may still be there.
    package static func moveFolder(_ path: String, to target: String) throws(StoreError) {
        if rename(path, target) == 0 { return try syncFolder(of: target) }
        guard errno == EXDEV else { throw failure("rename", path) }
        try createNewFolder(target)
        try copyFolder(path, to: target)
        try syncFolder(of: target)
    }

    /// Removes the folder and its contents as far as possible: for incomplete leftovers.
    package static func removeFolder(_ path: String) {
        try? removeContents(of: path)
        _ = rmdir(path)
    }

    package static func removeContents(of folder: String) throws(StoreError) {
        for name in try names(in: folder) {
            let inner = "\(folder)/\(name)"
            if unlink(inner) != 0 { removeFolder(inner) }
        }
    }

    /// Removes the folder if it is empty.
    package static func removeEmptyFolder(_ path: String) { _ = rmdir(path) }
}
