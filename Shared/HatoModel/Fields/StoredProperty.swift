/// Access to a stored property of an object with fields, by its offset: a load or a store. A key path costs some
/// hundred instructions each time, unless the optimizer happens to see through it.
struct StoredProperty<Root, Value>: Sendable {
    private let path: any WritableKeyPath<Root, Value> & Sendable
    /// Nil: the property is computed or has observers.
    private let offset: Int?

    @inline(__always)
    init(_ path: any WritableKeyPath<Root, Value> & Sendable) {
        self.path = path
        offset = MemoryLayout<Root>.offset(of: path)
    }

    @inline(__always)
    func get(_ root: Root) -> Value {
        guard let offset else { return root[keyPath: path] }
        return withUnsafePointer(to: root) { root in
            UnsafeRawPointer(root).advanced(by: offset).assumingMemoryBound(to: Value.self).pointee
        }
    }

    @inline(__always)
    func set(_ root: inout Root, to value: Value) {
        guard let offset else { return root[keyPath: path] = value }
        withUnsafeMutablePointer(to: &root) { root in
            UnsafeMutableRawPointer(root).advanced(by: offset).assumingMemoryBound(to: Value.self).pointee = value
        }
    }
}
