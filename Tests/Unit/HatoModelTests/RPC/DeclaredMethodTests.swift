import HatoModel
import Testing

/// Requirements of every declared method of every service.
@Suite struct DeclaredMethodTests {
    static let methods: [any RPCRequest.Type] = Service.builtIn + Auth.methods + Messages.methods + Notifier.methods
    static let notifications: [any RPCNotification.Type] =
        Auth.notifications + Messages.notifications + Notifier.notifications

    /// `HatoModel.Messages.OnDisconnect.Set` is `messages.onDisconnect.set`; a word in capital letters becomes all
    /// lower case.
    private func wireName(of type: Any.Type) -> String {
        String(reflecting: type).split(separator: ".").dropFirst().map { word in
            word.allSatisfy(\.isUppercase) ? word.lowercased() : word.prefix(1).lowercased() + word.dropFirst()
        }.joined(separator: ".")
    }

    @Test func wireNameFollowsTheTypesName() {
        for type in Self.methods { #expect(type.method == wireName(of: type)) }
        for type in Self.notifications { #expect(type.method == wireName(of: type)) }
    }

    @Test func namesAreUnique() {
        let names = Self.methods.map { $0.method }
        #expect(Set(names).count == names.count)
    }

    /// The client ends a subscription with the counterpart of the method that opened it.
    @Test func everyMethodThatOpensASubscriptionHasACounterpartThatEndsIt() throws {
        func opens<Request: RPCRequest>(_ type: Request.Type) throws -> Bool {
            type.example.result.json["subscription"] != nil
        }
        func parameters<Request: RPCRequest>(_ type: Request.Type) throws -> [String] {
            type.example.request.members.members.map(\.name)
        }
        let opening = try Self.methods.filter { try opens($0) }
        #expect(opening.count >= 3)
        for type in opening {
            let words = type.method.split(separator: ".")
            let ending = (words.dropLast() + ["un" + words[words.count - 1]]).joined(separator: ".")
            let counterpart = try #require(Self.methods.first { $0.method == ending }, "\(type.method)")
            #expect(try parameters(counterpart) == ["subscription"])
        }
    }

    @Test func summariesAreOneSentenceWithoutFullStop() {
        for summary in Self.methods.map({ $0.summary }) + Self.notifications.map({ $0.summary }) {
            #expect(!summary.isEmpty && !summary.hasSuffix(".") && summary.first?.isUppercase == true, "\(summary)")
        }
    }

    @Test func everyExampleDecodesToWhatItEncodes() throws {
        func check<Request: RPCRequest>(_ type: Request.Type) throws {
            let params = type.example.request.members
            let request = try type.decode(params)
            #expect(request.members == params, "\(type.method)")

            var writer = JSONWriter()
            type.example.result.write(into: &writer)
            let result = try JSONParser.parse(writer.bytes)
            #expect(try type.decodeResult(result).json == result, "\(type.method)")
        }
        for type in Self.methods { try check(type) }

        func check<Notification: RPCNotification>(_ type: Notification.Type) throws {
            let params = type.example.members
            #expect(try type.decode(params).members == params, "\(type.method)")
        }
        for type in Self.notifications { try check(type) }
    }

    @Test func everyMethodRefusesUnknownParametersByName() throws {
        func check<Request: RPCRequest>(_ type: Request.Type) throws {
            var params = type.example.request.members
            params["surely_unknown"] = 1
            let error = #expect(throws: RPCError.self, "\(type.method)") { _ = try type.decode(params) }
            #expect(error?.code == .invalidParams, "\(type.method)")
            #expect(error?.data["parameter"] == "surely_unknown", "\(type.method)")
        }
        for type in Self.methods { try check(type) }
    }

    @Test func everyExampleIsWhatItsSchemaSays() throws {
        func check<Request: RPCRequest>(_ type: Request.Type) throws {
            let params = type.example.request.members
            let schema = type.schema
            let properties = schema["properties"]?.object ?? [:]
            for member in params.members { #expect(properties[member.name] != nil, "\(type.method) \(member.name)") }
            for name in schema["required"]?.array ?? [] {
                #expect(name.string.flatMap { params[$0] } != nil, "\(type.method) \(name)")
            }
            // `--only` is checked against the schema.
            let result = type.example.result.json
            let results = Request.Result.schema
            guard results["additionalProperties"] == false else { return }
            for member in result.object?.members ?? [] {
                #expect(results["properties"]?[member.name] != nil, "\(type.method) \(member.name)")
            }
        }
        for type in Self.methods { try check(type) }
    }

    /// Including objects inside objects.
    @Test func everyFieldSaysWhatItMeans() {
        func check(_ schema: JSONObject, _ place: String) {
            for member in schema["properties"]?.object?.members ?? [] {
                let inner = member.value.object ?? [:]
                let name = "\(place).\(member.name)"
                let meaning = inner["description"]?.string ?? ""
                let beginsWell = meaning.first.map { $0.isLetter || $0.isNumber || $0 == "`" }
                #expect(beginsWell == true, "\(name)")
                #expect(!meaning.hasSuffix(".") && !meaning.contains("|"), "\(name): \(meaning)")
                check(inner, name)
                check(inner["items"]?.object ?? [:], name)
            }
        }
        func check<Request: RPCRequest>(_ type: Request.Type) {
            check(type.schema, type.method)
            check(Request.Result.schema, "\(type.method) result")
        }
        for type in Self.methods { check(type) }
        for type in Self.notifications { check(type.schema, type.method) }
    }
}
