import HatoModel

/// Command lines of `hato-notifier` and the calls that they make. `@name` is a file (`NotifierCommands.files`).
enum NotifierCommandLines {
    struct Line: Sendable {
        var line: String
        /// The file on standard input.
        var input: String?
        var method: String
        var params: JSONObject

        init<Request: RPCRequest>(
            _ line: String, _ method: Request.Type, _ params: JSONObject = [:], input: String? = nil
        ) {
            (self.line, self.input, self.method) = (line, input, Request.method)
            // In the order of the table of fields.
            self.params = (try? Request.decode(params))?.members ?? ["undecodable": .object(params)]
        }
    }

    static let all = devices + sending + outbox + people + registries

    private static let subscription: JSONValue = [
        "endpoint": "https://push.example.net/s/5ecret",
        "keys": [
            "p256dh": "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
            "auth": "BTBZMqHH6r4Tts7J_aSIgg",
        ],
    ]

    private typealias Devices = Notifier.Devices
    private static let devices: [Line] = [
        Line("devices list", Devices.List.self),
        Line(
            "devices list --uid u1 --after dev_1 --limit 5", Devices.List.self,
            ["uid": "u1", "after": "dev_1", "limit": 5]),
        Line(
            "devices register https://example.com/hooks/hato --uid u1", Devices.Register.self,
            ["platform": "webhook", "url": "https://example.com/hooks/hato", "uid": "u1"]),
        Line(
            "devices register https://example.com/ --app a --locale ja-JP --time-zone Asia/Tokyo --secret-file @secret",
            Devices.Register.self,
            [
                "platform": "webhook", "url": "https://example.com/", "secret": "whsec_5ecret", "app": "a",
                "locale": "ja-JP", "timeZone": "Asia/Tokyo",
            ]),
        Line(
            "devices register --apns-token-file @apns --environment sandbox --app com.example.chat",
            Devices.Register.self,
            [
                "platform": "apns", "token": "5ec2e75ec2e75ec2e75ec2e75ec2e7", "environment": "sandbox",
                "app": "com.example.chat",
            ]),
        Line(
            "devices register --fcm-token-file @fcm", Devices.Register.self,
            ["platform": "fcm", "token": "5ecret-fcm"]),
        Line(
            "devices register --fcm-token-file -", Devices.Register.self, ["platform": "fcm", "token": "5ecret-fcm"],
            input: "fcm"),
        Line("devices register --fcm-fid-file @fid", Devices.Register.self, ["platform": "fcm", "fid": "5ecret-fid"]),
        Line(
            "devices register --subscription-file @subscription.json --locale de", Devices.Register.self,
            ["platform": "webpush", "subscription": subscription, "locale": "de"]),
        Line(
            "devices register --subscription-file -", Devices.Register.self,
            ["platform": "webpush", "subscription": subscription], input: "subscription.json"),
        Line(
            "devices register --subscription-file - --token-file -", Devices.Register.self,
            ["platform": "webpush", "subscription": subscription], input: "token-and-subscription"),
        Line("devices register --email --locale ja", Devices.Register.self, ["platform": "email", "locale": "ja"]),
        Line("devices rotate-secret dev_1", Devices.RotateSecret.self, ["device": "dev_1"]),
        Line(
            "devices rotate-secret dev_1 --secret-file -", Devices.RotateSecret.self,
            ["device": "dev_1", "secret": "whsec_5ecret"], input: "secret"),
        Line("devices unregister dev_1", Devices.Unregister.self, ["device": "dev_1"]),
        Line("apps list", Notifier.Apps.List.self),
        Line("apps check", Notifier.Apps.Check.self),
        Line("apps check com.example.chat", Notifier.Apps.Check.self, ["app": "com.example.chat"]),
        Line("apps reload", Notifier.Apps.Reload.self),
        Line("apps resume a", Notifier.Apps.Resume.self, ["app": "a"]),
        Line("apps resume a --platform apns", Notifier.Apps.Resume.self, ["app": "a", "platform": "apns"]),
        Line("apps webpush-key", Notifier.Webpush.Key.self),
        Line("apps webpush-key a", Notifier.Webpush.Key.self, ["app": "a"]),
        Line("backup monday", Notifier.Backup.self, ["name": "monday"]),
    ]

    private static let text: JSONValue = ["title": "お知らせ", "body": "明日です"]
    private static let sending: [Line] = [
        Line(
            "send --to u1 --to u2 --title お知らせ --body 明日です", Notifier.Send.self,
            ["to": ["uids": ["u1", "u2"]], "notification": text]),
        Line(
            "send --device dev_1 --device dev_2 --body b --dry-run", Notifier.Send.self,
            ["to": ["devices": ["dev_1", "dev_2"]], "notification": ["body": "b"], "dryRun": true]),
        Line(
            "send --topic news --type search_results_list --data search_keyword=鳩 --data 'order=a = b'",
            Notifier.Send.self,
            [
                "to": ["topic": "news"], "type": "search_results_list",
                "data": ["search_keyword": "鳩", "order": "a = b"],
            ]),
        Line(
            "send --device-tokens-file @tokens --platform fcm --app a --title t", Notifier.Send.self,
            [
                "to": [
                    "tokens": [
                        ["platform": "fcm", "app": "a", "token": "5ecret-1"],
                        ["platform": "fcm", "app": "a", "token": "5ecret-2"],
                    ]
                ], "notification": ["title": "t"],
            ]),
        Line(
            "send --device-tokens-file - --platform apns --title t", Notifier.Send.self,
            [
                "to": ["tokens": [["platform": "apns", "token": "5ecret-fcm"]]],
                "notification": ["title": "t"],
            ], input: "fcm"),
        Line(
            """
            send --to u1 --title お知らせ --body 明日です --localized @localized.json --platforms @platforms.json \
            --category CHAT --content full --idempotency-key news-7 --ttl 3600 --collapse-key c --priority normal \
            --thread c1 --sound default --badge 0 --image https://example.com/p.jpg --link https://example.com/c1 \
            --interruption-level time-sensitive --summary '{count} new photos'
            """, Notifier.Send.self,
            [
                "to": ["uids": ["u1"]], "notification": text,
                "localized": ["en": ["title": "News"]], "platforms": ["apns": ["aps": ["target-content-id": "c1"]]],
                "category": "CHAT", "content": "full", "idempotencyKey": "news-7",
                "options": [
                    "ttlSeconds": 3600, "collapseKey": "c", "priority": "normal", "thread": "c1", "sound": "default",
                    "badge": 0, "image": "https://example.com/p.jpg", "link": "https://example.com/c1",
                    "interruptionLevel": "time-sensitive", "summary": "{count} new photos",
                ],
            ]),
        Line(
            "send --to u1 --title t --platforms -", Notifier.Send.self,
            [
                "to": ["uids": ["u1"]], "notification": ["title": "t"],
                "platforms": ["apns": ["aps": ["target-content-id": "c1"]]],
            ], input: "platforms.json"),
        Line(
            "send-to-device @payload.json --device-tokens-file @fcm", Notifier.SendToDevice.self,
            ["token": "5ecret-fcm", "payload": ["notification": ["title": "t", "badge": "1"], "data": ["r": "1"]]]),
        Line(
            """
            send-to-device - --device-tokens-file @tokens --app a --priority high --time-to-live 60 --collapse-key c \
            --content-available --mutable-content --dry-run --restricted-package-name com.example.chat
            """, Notifier.SendToDevice.self,
            [
                "token": ["5ecret-1", "5ecret-2"], "app": "a",
                "payload": ["notification": ["title": "t", "badge": "1"], "data": ["r": "1"]],
                "options": [
                    "priority": "high", "timeToLive": 60, "collapseKey": "c", "contentAvailable": true,
                    "mutableContent": true, "dryRun": true, "restrictedPackageName": "com.example.chat",
                ],
            ], input: "payload.json"),
    ]

    private static let outbox: [Line] = [
        Line("outbox", Notifier.Stats.self),
        Line("outbox counts", Notifier.Stats.self),
        Line("outbox status ntf_1", Notifier.Status.self, ["notification": "ntf_1"]),
        Line(
            "outbox status ntf_1 --after ntf_1-9 --limit 10", Notifier.Status.self,
            ["notification": "ntf_1", "after": "ntf_1-9", "limit": 10]),
        Line(
            "outbox show ntf_1 --limit 10 --after ntf_1-9", Notifier.Status.self,
            ["notification": "ntf_1", "after": "ntf_1-9", "limit": 10]),
        Line("outbox list", Notifier.Outbox.List.self),
        Line(
            "outbox list --uid u1 --device dev_1 --state pending --trigger chat --after a --limit 1000",
            Notifier.Outbox.List.self,
            [
                "uid": "u1", "device": "dev_1", "state": "pending", "trigger": "chat", "after": "a", "limit": 1000,
            ]),
        Line("outbox follow --after 0 --max-events 1", Notifier.Follow.self, ["after": 0]),
        Line("follow --max-events 1", Notifier.Follow.self),
        Line("follow --after 5 --epoch e --max-events 1", Notifier.Follow.self, ["after": 5, "epoch": "e"]),
        Line("dead list", Notifier.Dead.List.self),
        Line("dead list --after 1.a --limit 2", Notifier.Dead.List.self, ["after": "1.a", "limit": 2]),
        Line("dead replay ntf_1-0 ntf_2-0", Notifier.Dead.Replay.self, ["deliveries": ["ntf_1-0", "ntf_2-0"]]),
        Line("dead replay --all", Notifier.Dead.Replay.self, ["all": true]),
        Line("dead drop ntf_1-0", Notifier.Dead.Drop.self, ["deliveries": ["ntf_1-0"]]),
        Line("dead drop --all", Notifier.Dead.Drop.self, ["all": true]),
        Line("withdraw ntf_1", Notifier.Withdraw.self, ["notification": "ntf_1"]),
        Line("withdraw --uid u1 --thread c1", Notifier.Withdraw.self, ["uid": "u1", "thread": "c1"]),
    ]

    private static let window: JSONValue = [
        "days": ["mon", "tue", "wed", "thu", "fri"], "from": "22:00", "to": "07:00", "mode": "hold",
    ]
    private typealias Preferences = Notifier.Preferences
    private static let people: [Line] = [
        Line("badges get", Notifier.Badges.Get.self),
        Line("badges get --uid u1", Notifier.Badges.Get.self, ["uid": "u1"]),
        Line("badges set 3 --thread c1 --uid u1", Notifier.Badges.Set.self, ["thread": "c1", "count": 3, "uid": "u1"]),
        Line("badges set 0", Notifier.Badges.Set.self, ["count": 0]),
        Line("preferences get", Preferences.Get.self),
        Line("preferences get --uid u1", Preferences.Get.self, ["uid": "u1"]),
        Line(
            "preferences set @preferences.json", Preferences.Set.self,
            ["timeZone": "Asia/Tokyo", "quiet": [window], "mutes": ["c1": true], "off": nil]),
        Line(
            "preferences set - --uid u1", Preferences.Set.self,
            ["uid": "u1", "timeZone": "Asia/Tokyo", "quiet": [window], "mutes": ["c1": true], "off": nil],
            input: "preferences.json"),
        Line(
            """
            preferences set --uid u1 --time-zone Europe/Berlin --quiet 'mon-fri 22:00-07:00 hold' \
            --quiet 'sat,sun 00:00-00:00 silent' --mute c1 --mute c2=2026-12-01T08:00:00Z --off webpush --off apns
            """, Preferences.Set.self,
            [
                "uid": "u1", "timeZone": "Europe/Berlin",
                "quiet": [window, ["days": ["sat", "sun"], "from": "00:00", "to": "00:00", "mode": "silent"]],
                "mutes": ["c1": true, "c2": 1_796_112_000_000], "off": ["webpush", "apns"],
            ]),
        Line(
            "preferences set --quiet 'sun-mon 01:00-02:00 hold' --delete mutes --delete timeZone",
            Preferences.Set.self,
            [
                "timeZone": nil, "quiet": [["days": ["sun", "mon"], "from": "01:00", "to": "02:00", "mode": "hold"]],
                "mutes": nil,
            ]),
        Line("quick-replies get", Notifier.QuickReplies.Get.self),
        Line("quick-replies get --locale ja", Notifier.QuickReplies.Get.self, ["locale": "ja"]),
        Line("quick-replies set 了解 'すぐ 行く'", Notifier.QuickReplies.Set.self, ["texts": ["了解", "すぐ 行く"]]),
        Line("quick-replies set", Notifier.QuickReplies.Set.self, ["texts": []]),
        Line(
            "respond ntf_1 REPLY --text 今行きます --reply-token-file @reply", Notifier.Respond.self,
            ["notification": "ntf_1", "action": "REPLY", "text": "今行きます", "replyToken": "5ecret-reply"]),
        Line(
            "respond ntf_1 --quick-reply 2 --reply-token-file -", Notifier.Respond.self,
            ["notification": "ntf_1", "quickReply": 2, "replyToken": "5ecret-reply"], input: "reply"),
        Line("respond ntf_1 opened", Notifier.Respond.self, ["notification": "ntf_1", "action": "opened"]),
        Line("topics list", Notifier.Topics.List.self),
        Line(
            "topics list --topic news --after u1 --limit 2", Notifier.Topics.List.self,
            ["topic": "news", "after": "u1", "limit": 2]),
        Line("topics list --uid u1", Notifier.Topics.List.self, ["uid": "u1"]),
        Line("topics subscribe news", Notifier.Topics.Subscribe.self, ["topic": "news"]),
        Line("topics subscribe news --uid u1", Notifier.Topics.Subscribe.self, ["topic": "news", "uid": "u1"]),
        Line("topics unsubscribe news --uid u1", Notifier.Topics.Unsubscribe.self, ["topic": "news", "uid": "u1"]),
    ]

    private static let category: JSONObject = ["id": "MARRY_ME", "actions": [["id": "ACCEPT", "title": "承認"]]]
    private static let payloadType: JSONObject = [
        "type": "product_detail", "required": ["product_id": "id"], "optional": ["until": "date"],
        "template": ["title": "新着商品", "body": "{product_id}"], "localized": ["en": ["title": "New"]],
        "category": "CHAT", "timeSensitive": true,
    ]
    private static let trigger: JSONObject = [
        "id": "chat-message", "database": "default", "pattern": "/chats/{chat}/messages/{id}", "on": ["created"],
        "when": "after.text != null", "presenceAt": "/chats/{chat}/viewing/{uid}",
        "recipients": ["uidsAt": "/chats/{chat}/members"], "type": "message", "category": "CHAT", "content": "full",
        "notification": ["title": "{after.senderName}", "body": "{after.text}"], "localized": ["en": ["title": "New"]],
        "data": ["chat": "{chat}"], "options": ["thread": "{chat}"], "platforms": ["fcm": ["fcm_options": [:]]],
        "badge": ["pattern": "/chats/{thread}/unread/{uid}"], "withdrawOn": ["deleted"],
    ]
    /// What `NotifierCommands` writes into the files of these names.
    static let documents: [String: JSONObject] = [
        "category.json": category, "type.json": payloadType, "trigger.json": trigger,
        "subscription.json": subscription.object ?? [:],
        "preferences.json": ["timeZone": "Asia/Tokyo", "quiet": [window], "mutes": ["c1": true], "off": nil],
        "payload.json": ["notification": ["title": "t", "badge": "1"], "data": ["r": "1"]],
        "localized.json": ["en": ["title": "News"]],
        "platforms.json": ["apns": ["aps": ["target-content-id": "c1"]]],
    ]

    private static let registries: [Line] = [
        Line("categories list", Notifier.Categories.List.self),
        Line("categories get", Notifier.Categories.Get.self),
        Line("categories get --etag 5f1d0a2b9c3e4d70", Notifier.Categories.Get.self, ["etag": "5f1d0a2b9c3e4d70"]),
        Line("categories set @category.json", Notifier.Categories.Set.self, category),
        Line("categories set -", Notifier.Categories.Set.self, category, input: "category.json"),
        Line("categories remove CHAT", Notifier.Categories.Remove.self, ["id": "CHAT"]),
        Line("types list", Notifier.Types.List.self),
        Line("types set @type.json", Notifier.Types.Set.self, payloadType),
        Line("types set -", Notifier.Types.Set.self, payloadType, input: "type.json"),
        Line("types remove product_detail", Notifier.Types.Remove.self, ["type": "product_detail"]),
        Line("triggers list", Notifier.Triggers.List.self),
        Line("triggers set @trigger.json", Notifier.Triggers.Set.self, trigger),
        Line("triggers set -", Notifier.Triggers.Set.self, trigger, input: "trigger.json"),
        Line("triggers remove chat", Notifier.Triggers.Remove.self, ["id": "chat"]),
        Line(
            "triggers test chat /chats/c1/messages/m1", Notifier.Triggers.Test.self,
            ["id": "chat", "path": "/chats/c1/messages/m1"]),
        Line(
            #"triggers test chat /chats/c1 --type updated --author u1 --before '"a"' --after @@localized.json"#,
            Notifier.Triggers.Test.self,
            [
                "id": "chat", "path": "/chats/c1", "type": "updated", "before": "a",
                "after": ["en": ["title": "News"]], "uid": "u1",
            ]),
        Line(
            "triggers test chat /a --after -", Notifier.Triggers.Test.self,
            ["id": "chat", "path": "/a", "after": ["en": ["title": "News"]]], input: "localized.json"),
    ]
}
