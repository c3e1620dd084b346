import HatoModel

/// Reads the parameters of a REST request that select children (spec realtime-database §4.5) into the model's query.
enum RESTQuery {
    /// The query; nil when no parameter selects children.
    ///
    /// Throws with Firebase's own texts.
    static func query(_ parameters: QueryParameters) throws(RESTError) -> TreeQuery? {
        guard parameters.hasQuery else { return nil }
        guard let orderBy = parameters["orderBy"] else {
            throw RESTError(400, "orderBy must be defined when other query parameters are defined")
        }
        var members: JSONObject = ["orderBy": .string(try order(orderBy))]
        for name in ["startAt", "startAfter", "endAt", "endBefore", "equalTo"] {
            if let text = parameters[name] { members.append(name, try bound(text)) }
        }
        for name in ["limitToFirst", "limitToLast"] {
            if let text = parameters[name] { members.append(name, try limit(text, name)) }
        }
        do { return try TreeQuery(.object(members)) } catch { throw RESTError(400, error.reason) }
    }

    /// A page of keys (`isKeyPage`), whose start is the key as it is; nil when no parameter selects children.
    ///
    /// Throws with Firebase's own texts.
    static func keyPage(_ parameters: QueryParameters) throws(RESTError) -> TreeQuery? {
        guard let count = parameters["limitToFirst"] else { return nil }
        var members: JSONObject = ["orderBy": "$key", "limitToFirst": try limit(count, "limitToFirst")]
        if let key = parameters.nonEmpty("startAfter") { members.append("startAfter", .string(key)) }
        do { return try TreeQuery(.object(members)) } catch { throw RESTError(400, error.reason) }
    }

    private static func order(_ text: String) throws(RESTError) -> String {
        guard case .string(let path)? = try? JSONParser.parse(text, depth: 1) else {
            throw RESTError(400, "orderBy must be a valid JSON encoded path")
        }
        return path
    }

    /// A primitive, or a primitive and a key: `3,"k"`.
    private static func bound(_ text: String) throws(RESTError) -> JSONValue {
        let wrong = RESTError(400, "Constraint index field must be a JSON primitive")
        // A closing bracket in the text cannot end the list: the parser refuses what follows the value.
        guard let parts = (try? JSONParser.parse("[\(text)]", depth: 2))?.array, 1...2 ~= parts.count else {
            throw wrong
        }
        switch parts[0] {
        case .array, .object: throw wrong
        case .null, .bool, .number, .string: break
        }
        return parts.count == 1 ? parts[0] : ["value": parts[0], "key": parts[1]]
    }

    private static func limit(_ text: String, _ name: String) throws(RESTError) -> JSONValue {
        guard case .number(let number)? = try? JSONParser.parse(text, depth: 1) else {
            throw RESTErrors.parameter(name, "an integer")
        }
        return .number(number)
    }
}
