import HatoModel

extension RESTRequest {
    /// What a request does first.
    public enum Start: Sendable, Hashable {
        /// Calls a service.
        case call(RESTOperation)
        /// Responds without a call.
        case answer(RESTAnswer)
    }

    /// The first step of this request. Of an event stream it is the call that opens its listener.
    ///
    /// - Parameters:
    ///   - body: the whole body; empty where there is none.
    ///   - identity: the caller: `identity(from:)`, or what its credential was translated to.
    /// - Throws: `RESTError` for a body that is not allowed.
    public func start(
        _ body: consuming [UInt8], as identity: RESTIdentity, _ limits: RESTLimits = RESTLimits()
    ) throws(RESTError) -> Start {
        switch target {
        case .node(let path): return .call(try operation(body, path, identity, limits))
        case .rules where method.isRead:
            return .call(
                call(.rules, nil, identity) { writer in
                    if options.isStrict { writer.member("strict", true) }
                })
        case .rules:
            let rules = try Self.rules(body, limits)
            return .call(
                call(.newRules, nil, identity) { writer in
                    writer.member("rules")
                    writer.write(rules)
                    if options.isDryRun { writer.member("dryRun", true) }
                })
        case .coverage: return .answer(response(200, Array("{}".utf8)))
        }
    }

    private func operation(
        _ body: consuming [UInt8], _ path: TreePath, _ identity: RESTIdentity, _ limits: RESTLimits
    ) throws(RESTError) -> RESTOperation {
        switch method {
        case .get, .head: return isStream ? listen(path, identity) : get(path, identity)
        case .put: return set(path, try checked(body, path.depth, limits), identity)
        case .post:
            guard path.depth < TreeLimits.depthMax else { throw RESTErrors.pathTooDeep }
            return push(path, try checked(body, path.depth + 1, limits), identity)
        case .patch: return update(path, try checked(body, path.depth, limits), identity)
        case .delete:
            return call(.remove, path, identity) { writer in
                if let ifMatch = conditions.ifMatch { writer.member("ifMatch", Self.etag(ifMatch)) }
            }
        }
    }

    private func checked(_ body: consuming [UInt8], _ depth: Int, _ limits: RESTLimits) throws(RESTError) -> [UInt8] {
        let body = try RESTBody(body, depth: depth, isPatch: method == .patch, limits)
        if let valuesMax = options.writeValuesMax, body.valueCount > valuesMax { throw RESTErrors.writeTooBig }
        return body.text
    }

    private static func rules(_ body: [UInt8], _ limits: RESTLimits) throws(RESTError) -> String {
        guard body.count <= limits.bodyBytesMax else { throw RESTErrors.writeTooBig }
        guard body.contains(where: { !$0.isBlank }) else { throw RESTErrors.noData }
        guard let text = String(validating: body, as: UTF8.self) else { throw RESTErrors.invalidRules }
        return text
    }

    // MARK: Calls

    private func get(_ path: TreePath, _ identity: RESTIdentity) -> RESTOperation {
        call(.read, path, identity) { writer in
            if let query {
                writer.member("query")
                query.write(into: &writer)
            }
            if options.isShallow {
                writer.member("shallow", true)
            } else if options.isExport {
                writer.member("export", true)
            }
            if conditions.wantsETag || conditions.ifNoneMatch != nil { writer.member("etag", true) }
        }
    }

    private func listen(_ path: TreePath, _ identity: RESTIdentity) -> RESTOperation {
        call(.listen, path, identity) { writer in
            guard let query else { return }
            writer.member("query")
            query.write(into: &writer)
        }
    }

    private func set(_ path: TreePath, _ value: [UInt8], _ identity: RESTIdentity) -> RESTOperation {
        call(.set, path, identity) { writer in
            writer.member("value")
            writer.write(encoded: value)
            if let ifMatch = conditions.ifMatch {
                writer.member("ifMatch", Self.etag(ifMatch))
            } else if conditions.wantsETag {
                writer.member("etag", true)
            }
            if options.printing != .silent { writer.member("echo", true) }
        }
    }

    private func push(_ path: TreePath, _ value: [UInt8], _ identity: RESTIdentity) -> RESTOperation {
        call(.push, path, identity) { writer in
            writer.member("value")
            writer.write(encoded: value)
            if conditions.wantsETag { writer.member("etag", true) }
        }
    }

    private func update(_ path: TreePath, _ values: [UInt8], _ identity: RESTIdentity) -> RESTOperation {
        call(.update, path, identity) { writer in
            writer.member("values")
            writer.write(encoded: values)
            if options.printing != .silent { writer.member("echo", true) }
        }
    }

    /// Reads the value that a condition was compared with, where the error left it out.
    func mismatchRead(_ path: TreePath, _ identity: RESTIdentity) -> RESTOperation {
        call(.mismatch, path, identity) { writer in writer.member("etag", true) }
    }

    /// Reads the keys that the query of a stream selects, which fails where there is no index.
    func indexProbe(_ identity: RESTIdentity) -> RESTOperation? {
        guard case .node(let path) = target, let query else { return nil }
        return call(.indexProbe, path, identity) { writer in
            writer.member("query")
            query.write(into: &writer)
            writer.member("shallow", true)
        }
    }

    private func call(
        _ purpose: RESTOperation.Purpose, _ path: TreePath?, _ identity: RESTIdentity,
        _ write: (inout JSONWriter) -> Void
    ) -> RESTOperation {
        var writer = JSONWriter(capacity: 256)
        writer.beginObject()
        if database != .default { writer.member("database", database.rawValue) }
        if let path {
            writer.member("path")
            path.write(into: &writer)
        }
        write(&writer)
        if let auth = identity.auth { writer.member("auth", auth) }
        if let user = identity.as {
            writer.member("as")
            writer.write(encoded: user)
        }
        if let from = identity.from { writer.member("from", from) }
        writer.endObject()
        return RESTOperation(params: writer.bytes, purpose: purpose)
    }

    /// The etag of no value, in practice: a hash of nothing that was found.
    private static let impossibleETag = "AAAAAAAAAAAAAAAAAAAAAAAAAAA="

    /// An etag as services take it. A text that can be no etag equals none, and is no error (spec §7.4).
    private static func etag(_ text: String) -> String {
        if text == "null_etag" { return text }
        let bytes = text.utf8
        guard bytes.count == impossibleETag.utf8.count, bytes.last == UInt8(ascii: "=") else { return impossibleETag }
        let isHash = bytes.dropLast().allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "+"), UInt8(ascii: "/"):
                true
            default: false
            }
        }
        return isHash ? text : impossibleETag
    }
}

extension JSONWriter {
    fileprivate mutating func member(_ name: String, _ value: Bool) {
        member(name)
        write(value)
    }

    fileprivate mutating func member(_ name: String, _ value: String) {
        member(name)
        write(value)
    }
}
