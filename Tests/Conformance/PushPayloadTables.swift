import HatoModel
import Testing

/// The table of payloads, which clients in any language can test with.
@Suite struct PushPayloadTables {
    @Test func everyPayloadOfTheTableIsDecodedOrRefusedAsItSays() throws {
        let table = try Table("push-payloads")
        let types = try table.rows("types").map { json in
            try Notifier.Types.Set.decode(json.object ?? [:]).payloadType
        }
        for row in try table.rows("payloads") {
            let name = try row.requiredString("name")
            let payload = try row.required("payload").object ?? [:]
            do throws(PayloadError) {
                let named = payload[Notifier.PayloadType.typeField]?.string
                guard let type = types.first(where: { $0.type == named }) else { throw .invalidType }
                let values = try type.values(in: payload)
                #expect(row["fields"]?.object?.members.count == values.texts.count, "\(name)")
                for member in row["fields"]?.object?.members ?? [] {
                    #expect(values.texts[member.name] == member.value.string, "\(name)")
                }
            } catch {
                #expect(row["error"]?.string == error.reason, "\(name)")
                #expect(row["field"]?.string == error.field, "\(name)")
            }
        }
    }
}
