public import HatoModel

/// What follows a call of a request.
public enum RESTStep: Sendable, Hashable {
    /// The request ends with this response.
    case answer(RESTAnswer)
    /// Another call is needed.
    case call(RESTOperation)
    /// The same call is made again for a while, since an index is being built; after that, this is the response.
    case again(otherwise: RESTAnswer)
}

extension RESTRequest {
    /// What follows the result of a call.
    ///
    /// - Parameter result: the JSON text of the result.
    public func step(after operation: RESTOperation, result: [UInt8]) -> RESTStep {
        guard let members = ResultMembers(result) else { return .answer(error(RESTErrors.internal)) }
        let etag = members.string("etag")
        switch operation.purpose {
        case .read:
            guard let value = members["value"] else { break }
            if let etag, let known = conditions.ifNoneMatch, etag.utf8.elementsEqual(known.utf8) {
                return .answer(RESTAnswer(status: 304, contentType: nil, headers: Self.headers(etag: etag)))
            }
            return .answer(response(200, query == nil ? value : ValuePrinting.inKeyOrder(value), etag: etag))
        case .set:
            if let value = members["value"] { return .answer(response(200, value, etag: etag)) }
            if options.printing == .silent { return .answer(response(200, [], etag: etag)) }
        case .push:
            guard let key = members["key"] else { break }
            return .answer(response(200, Array("{\"name\":".utf8) + key + Array("}".utf8), etag: etag))
        case .update:
            if let values = members["values"] { return .answer(response(200, values)) }
            if options.printing == .silent { return .answer(response(200, [])) }
        case .remove:
            let hasETag = conditions.wantsETag || conditions.ifMatch != nil
            return .answer(response(200, Array("null".utf8), etag: hasETag ? "null_etag" : nil))
        case .rules:
            guard let rules = members.string("rules") else { break }
            return .answer(RESTAnswer(status: 200, body: Array(rules.utf8), omitsBody: method == .head))
        case .newRules: return .answer(response(200, Array("{\"status\":\"ok\"}".utf8)))
        case .mismatch:
            guard let value = members["value"] else { break }
            return .answer(response(412, value, etag: etag))
        // Listeners have their own machine.
        case .listen: break
        // There was an index after all: the stream begins again.
        case .indexProbe: return .again(otherwise: error(RESTErrors.unavailable))
        }
        return .answer(error(RESTErrors.internal))
    }

    /// What follows the error of a call.
    ///
    /// - Parameter identity: the caller.
    public func step(after operation: RESTOperation, error: RPCError, as identity: RESTIdentity) -> RESTStep {
        let failure = RESTErrors.error(of: error)
        // Without the value there is no 412: clients write what they make of it.
        guard operation.purpose != .mismatch else { return .answer(self.error(failure)) }
        switch error.reason {
        case "etag_mismatch" where error.code == .failedPrecondition:
            guard case .node(let path) = target else { break }
            guard let value = error.data["value"] else { return .call(mismatchRead(path, identity)) }
            return .answer(response(412, value.encoded, etag: error.data["etag"]?.string))
        case "index_building" where error.code == .failedPrecondition: return .again(otherwise: self.error(failure))
        // There was no token that could be wrong.
        case _ where error.code == .unauthenticated && identity.auth == nil:
            return .answer(self.error(RESTErrors.unauthorized))
        default: break
        }
        return .answer(self.error(failure))
    }

    /// The response of an error.
    public func error(_ error: RESTError) -> RESTAnswer { error.response(omitsBody: method == .head) }

    /// The response with a value.
    func response(_ status: Int, _ value: [UInt8], etag: String? = nil) -> RESTAnswer {
        let headers = Self.headers(etag: etag)
        switch options.printing {
        // A condition that failed keeps its status.
        case .silent where status == 200: return RESTAnswer(status: 204, contentType: nil, headers: headers)
        case .pretty: return printed(status, ValuePrinting.pretty(value), headers, end: "\n")
        case .compact, .silent: return printed(status, value, headers)
        }
    }

    private func printed(
        _ status: Int, _ text: [UInt8], _ headers: [RESTAnswer.Header], end: String = ""
    ) -> RESTAnswer {
        var headers = headers
        if let download = options.download {
            headers.append(.init("Content-Disposition", download.contentDisposition))
        }
        guard let callback = options.callback else {
            return RESTAnswer(
                status: status, headers: headers, body: end.isEmpty ? text : text + Array(end.utf8),
                omitsBody: method == .head)
        }
        headers.append(.init("X-Content-Type-Options", "nosniff"))
        let body = Array("\(callback)(".utf8) + ValuePrinting.script(text) + Array(");".utf8)
        return RESTAnswer(
            status: status, contentType: "application/javascript; charset=utf-8", headers: headers, body: body,
            omitsBody: method == .head)
    }

    private static func headers(etag: String?) -> [RESTAnswer.Header] {
        guard let etag else { return [] }
        return [.init("ETag", etag), .init("Access-Control-Expose-Headers", "ETag")]
    }
}
