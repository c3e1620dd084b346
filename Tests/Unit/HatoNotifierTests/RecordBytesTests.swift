import HatoModel
import Testing

@testable import HatoNotifier

/// The bytes of records, as stores hold them: what is written here is read by every later version.
@Suite struct RecordBytesTests {
    private func check<Record: FieldValue>(_: Record.Type, _ text: String) throws {
        let record = try RecordCodec.decode(Record.self, Array(text.utf8), key: [1])
        #expect(String(decoding: RecordCodec.encode(record), as: UTF8.self) == text)
    }

    @Test func recordsHaveTheseBytes() throws {
        try check(
            DeviceRecord.self,
            #"{"device":"dev_1","uid":"u1","platform":"webhook","url":"https://example.com/h","app":"a","#
                + #""locale":"ja","secret":"whsec_x","previousSecret":"whsec_y","previousUntil":7,"#
                + #""state":"disabled","disabledReason":"gone","createdAt":1795000000000,"failingSince":8}"#)
        try check(
            CursorRecord.self, #"{"version":7,"epoch":"e","time":8,"gaps":1,"missedVersions":2,"handledThrough":9}"#)
        try check(
            ChangeRecord.self,
            #"{"version":7,"epoch":"e","time":8,"change":{"pattern":"/a/{x}","parameters":{"x":"1"},"path":"/a/1","#
                + #""type":"updated","before":null,"after":{"b":1},"uid":"u1","isPartial":true,"isTruncated":true}}"#)
        try check(
            NotificationRecord.self,
            #"{"id":"ntf_1","createdAt":1,"expiresAt":2,"text":{"title":"t","body":"b"},"data":{"a":"b"},"#
                + #""collapseKey":"c","trigger":"t1","path":"/a","recipients":3,"idempotencyKey":[105,1]}"#)
        try check(
            IdempotencyRecord.self,
            #"{"notification":"ntf_1","recipients":3,"fingerprint":"f","acceptedAt":4,"through":"u2"}"#)
        try check(
            NotificationRecord.self,
            #"{"id":"ntf_1","createdAt":1,"expiresAt":2,"text":{},"data":{},"recipients":3,"content":"ids"}"#)
        try check(
            NotificationRecord.self,
            #"{"id":"ntf_2","createdAt":1,"expiresAt":2,"text":{},"data":{"a":"b"},"recipients":1,"#
                + #""choice":{"notification":"ntf_1","device":"dev_1","category":"c","action":"A","text":"t","#
                + #""thread":"c1","at":3}}"#)
        try check(
            EffectRecord.self,
            #"{"notification":"ntf_1","uid":"u1","action":"A","device":"dev_1","locale":"ja","quickReply":0,"#
                + #""kind":"webhook","database":"d","path":"/","value":"https://example.com/","fills":{"text":"t"},"#
                + #""respondedAt":1,"attempts":2,"dueAt":3,"category":"c"}"#)
        try check(
            IdempotencyRecord.self,
            #"{"notification":"ntf_1","recipients":3,"fingerprint":"f","acceptedAt":4,"isFannedOut":true}"#)
        try check(
            FanOutRecord.self,
            #"{"notification":"ntf_1","topic":"t","through":"u1","total":3,"done":1,"deliveries":2}"#)
        try check(
            FanOutRecord.self,
            #"{"notification":"ntf_1","uids":["u1"],"devices":["d1"],"total":1,"done":0,"deliveries":0}"#)
        try check(TopicRecord.self, #"{"users":7}"#)
        try check(GoneUserRecord.self, #"{"goneAt":7}"#)
        try check(ReconciliationRecord.self, #"{"begun":7,"stage":"topics","after":"u1","failed":["u0"]}"#)
        try check(ReconciliationRecord.self, #"{"begun":7,"failed":["u0"]}"#)
    }

    @Test func deliveriesAndWhatTheyDependOnHaveTheseBytes() throws {
        try check(
            DeliveryRecord.self,
            #"{"notification":"ntf_1","index":0,"device":"dev_1","uid":"u1","collapseKey":"c","#
                + #""sequenceVersion":5,"sequenceIndex":6,"createdAt":7,"machine":{"state":"dead","time":8,"#
                + #""attempts":9,"expiresAt":10,"reason":"expired","lastAttempt":{"at":11,"status":500,"#
                + #""error":"e"}},"parkedAt":"example.com"}"#)
        try check(
            DeliveryRecord.self,
            #"{"notification":"ntf_1","index":0,"device":"dev_1","uid":"u1","sequenceVersion":5,"sequenceIndex":6,"#
                + #""createdAt":7,"machine":{"state":"pending","time":8,"attempts":0,"expiresAt":10,"hold":"rate"},"#
                + #""queue":"apns default","pacing":{"thread":"c1","isPaced":true,"passing":"timeSensitive","turn":8,"#
                + #""merged":2,"isNext":true,"userTurn":9,"ofOtherThreads":1,"isTakenBack":true,"#
                + #""wentInto":"ntf_2-0"}}"#)
        try check(
            PreferencesRecord.self,
            #"{"timeZone":"Asia/Tokyo","quiet":[{"days":["mon"],"from":"22:00","to":"07:00","mode":"hold"}],"#
                + #""off":["apns"],"hasMutes":true,"isOfAccount":true}"#)
        try check(MuteRecord.self, #"{"thread":"c1","until":9}"#)
        try check(
            [OutboxEvent].self,
            #"[{"type":"dead","time":1,"notification":"ntf_1","delivery":"ntf_1-0","device":"dev_1","uid":"u1","#
                + #""reason":"expired"},{"type":"accepted","time":1,"notification":"ntf_1","recipients":2,"#
                + #""trigger":"t1","path":"/a"}]"#)
        try check(
            TriggerRecord.self,
            #"{"trigger":{"id":"t1","database":"default","pattern":"/chats/{chat}","on":["created"],"#
                + #""recipients":{"uids":["u1"]},"notification":{"title":"t"}},"startsAfter":3,"epoch":"e"}"#)
    }

    @Test func recordsOfALaterVersionAreRead() throws {
        let record = try RecordCodec.decode(
            CursorRecord.self,
            Array(#"{"version":7,"epoch":"e","time":8,"gaps":0,"missedVersions":0,"later":1}"#.utf8), key: [1])
        #expect(record.version == 7)
        #expect(throws: UnreadableRecord.self) { try RecordCodec.decode(CursorRecord.self, [0x7B], key: [1]) }
    }
}
