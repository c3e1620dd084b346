/// Wrong command lines of `hato-notifier`, with the exit code and what standard error says. `@name` is a file.
enum WrongNotifierLines {
    struct Line: Sendable {
        var line: String
        var code: Int32
        var words: [String]

        init(_ line: String, _ code: Int32, _ words: String...) {
            (self.line, self.code, self.words) = (line, code, words)
        }
    }

    /// Refused before the service is called.
    static let local = devices + sending + people + registries

    private static let addresses = "Give one of a URL, --apns-token-file, --fcm-token-file"
    private static let devices = [
        Line("devices register", 64, addresses),
        Line("devices register http://a/ --email", 64, addresses),
        Line("devices register --apns-token-file @apns --fcm-token-file @fcm", 64, addresses),
        Line("devices register --apns-token-file @none", 74, "cannot read '@none': no such file"),
        Line("devices register --apns-token-file @empty", 64, "no device token: give a file with it"),
        Line("devices register --fcm-token-file @empty", 64, "no registration token: give a file with it"),
        Line("devices register --fcm-fid-file -", 64, "no installation id: give a file with it, or a line on stdin"),
        Line("devices register --subscription-file @none", 74, "cannot read '@none': no such file"),
        Line("devices register --subscription-file @fcm", 64, "'@fcm' is not valid JSON"),
        Line(
            "devices register --subscription-file @no-keys.json", 64,
            "--subscription-file @no-keys.json: 'subscription.keys' is missing", "e.g. "),
        Line(
            "devices register --subscription-file @list.json", 64,
            "--subscription-file @list.json: 'subscription' must be an object, not an array"),
        Line("devices register --fcm-token 5ecret", 64, "Unknown option '--fcm-token'"),
        Line("devices register --apns-token-file @apns --environment test", 64, "--environment test: give one of"),
        Line("devices register http://a/ --secret-file @none", 74, "cannot read '@none': no such file"),
        Line("devices register http://a/ --secret-file @empty", 64, "no secret: give a file with it"),
        Line("devices list --limit many", 64, "--limit many: give a number"),
        Line("devices list --limit 1.5", 64, "--limit: 'limit' must be an integer"),
        Line("devices rotate-secret", 64, "Missing expected argument '<device>'"),
        Line("devices list --token-file @empty", 64, "no ID token: give a file with it"),
        Line("apps resume a --platform phone", 64, "--platform is apns, fcm or email"),
        Line("backup ../x", 64, "A backup is named with"),
    ]

    private static let targets = "Give one of --to, --device, --topic and --device-tokens-file"
    private static let sending = [
        Line("send --title t", 64, targets),
        Line("send --to u1 --topic news --title t", 64, targets),
        Line("send --to u1 --device-tokens-file @tokens --title t", 64, targets),
        Line("send --device-tokens-file @tokens --title t", 64, "--device-tokens-file needs --platform: apns or fcm"),
        Line("send --device-tokens-file @empty --platform fcm", 64, "--device-tokens-file @empty: it has no token"),
        Line("send --device-tokens-file @none --platform fcm", 74, "cannot read '@none': no such file"),
        Line("send --to u1 --platform fcm --title t", 64, "--platform and --app belong to --device-tokens-file"),
        Line("send --to u1 --title t --data chat", 64, "--data chat: give name=value"),
        Line("send --to u1 --title t --data a=1 --data a=2", 64, "--data a: it is given twice"),
        Line("send --to u1 --title t --priority urgent", 64, "--priority urgent: give one of high, normal"),
        Line("send --to u1 --title t --content some", 64, "--content some: give one of full, ids"),
        Line("send --to u1 --title t --interruption-level loud", 64, "give one of passive, active, time-sensitive"),
        Line("send --to u1 --title t --badge many", 64, "--badge many: give a number"),
        Line("send --to u1 --title t --ttl 0.5", 64, "--ttl: 'options.ttlSeconds' must be an integer"),
        Line("send --to u1 --title t --platforms @none", 74, "--platforms: cannot read '@none': no such file"),
        Line("send --to u1 --title t --platforms @fcm", 64, "--platforms: '@fcm' is not valid JSON"),
        Line(
            "send --to u1 --title t --platforms @payload.json", 64,
            "--platforms @payload.json: 'platforms.notification' is no known parameter; known are apns, fcm, webpush"),
        Line(
            "send --to u1 --title t --localized @numbers.json", 64,
            "--localized @numbers.json: 'localized.en.title' must be a string, not a number"),
        Line("send-to-device @payload.json", 64, "Give --device-tokens-file"),
        Line("send-to-device @none --device-tokens-file @tokens", 74, "cannot read '@none': no such file"),
        Line("send-to-device @fcm --device-tokens-file @tokens", 64, "'@fcm' is not valid JSON"),
        Line(
            "send-to-device @numbers.json --device-tokens-file @tokens", 64,
            "'@numbers.json': 'payload.en' is no known parameter; known are data, notification"),
        Line("send-to-device @payload.json --device-tokens-file @empty", 64, "@empty: it has no token"),
        Line(
            "send-to-device - --device-tokens-file -", 64,
            "the payload and --device-tokens-file both read stdin (-): give a file for one of them"),
        Line(
            "send --to u1 --title t --localized - --platforms -", 64,
            "--localized and --platforms both read stdin (-): give a file for one of them"),
        Line(
            "triggers test t /a --before - --after -", 64,
            "--before and --after both read stdin (-): give a file for one of them"),
        Line("outbox list --state lost", 64, "--state lost: give one of pending, leased, delivered, dropped, dead"),
        Line("outbox show", 64, "Missing expected argument '<notification>'"),
        Line("follow --after now", 64, "--after now: give a number"),
        Line("follow --max-events 0", 64, "--max-events is at least 1"),
        Line("withdraw", 64, "Give either a notification, or --uid and --thread"),
        Line("withdraw ntf_1 --uid u1 --thread c1", 64, "Give either a notification, or --uid and --thread"),
    ]

    private static let people = [
        Line("badges set", 64, "Missing expected argument '<count>'"),
        Line("badges set many", 64, "The value 'many' is invalid for '<count>'"),
        Line("preferences set", 64, "Give a file, or what to set, e.g. --time-zone Asia/Tokyo"),
        Line("preferences set --uid u1", 64, "Give a file, or what to set"),
        Line("preferences set @preferences.json --mute c1", 64, "Give a file or options, not both"),
        Line("preferences set @none", 74, "cannot read '@none': no such file"),
        Line("preferences set @list.json", 64, "'@list.json' holds no JSON object, e.g. {\"quiet\":"),
        Line("preferences set @numbers.json", 64, "'@numbers.json': 'en' is no known parameter; known are mutes"),
        Line("preferences set @bad-quiet.json", 64, "'@bad-quiet.json': A time of the day is from 00:00 to 23:59"),
        Line("preferences set --quiet 22:00-07:00", 64, "--quiet '22:00-07:00': give days, from-to and silent or hold"),
        Line("preferences set --quiet 'someday 22:00-07:00 hold'", 64, "give days, from-to and silent or hold"),
        Line("preferences set --quiet 'mon 22:00-25:00 hold'", 64, "e.g. 'mon,tue 22:00-07:00 hold'"),
        Line("preferences set --mute c1=tomorrow", 64, "--mute c1=tomorrow: the time is written as in c1=2026-12-01T"),
        Line("preferences set --off pager", 64, "--off pager: give one of apns, fcm, webpush, webhook"),
        Line("preferences set --delete all", 64, "Give one of timeZone, quiet, mutes, off"),
        Line("preferences set --mute c1 --delete mutes", 64, "--delete mutes: it is set as well"),
        Line("respond", 64, "Missing expected argument '<notification>'"),
        Line("respond ntf_1 REPLY --reply-token 5ecret", 64, "Unknown option '--reply-token'"),
        Line("respond ntf_1 REPLY --reply-token-file @none", 74, "cannot read '@none': no such file"),
        Line("respond ntf_1 REPLY --reply-token-file @empty", 64, "no reply token: give a file with it"),
        Line("respond ntf_1 --quick-reply first", 64, "--quick-reply first: give a number"),
        Line("topics subscribe", 64, "Missing expected argument '<topic>'"),
    ]

    private static let registries = [
        Line("categories set", 64, "Give a file, or a category that comes along with --shipped"),
        Line("categories set @category.json --shipped quick-replies", 64, "Give a file, or a category"),
        Line("categories set --shipped buttons", 64, "There is no category \"buttons\"", "quick-replies"),
        Line("categories set @none", 74, "cannot read '@none': no such file"),
        Line("categories set @no-title.json", 64, "'@no-title.json': 'actions.0.title' is missing"),
        Line("types set @none", 74, "cannot read '@none': no such file"),
        Line("types set @empty", 64, "'@empty' is not valid JSON"),
        Line("types set @bad-kind.json", 64, "'@bad-kind.json': ", "required.product_id"),
        Line("triggers set", 64, "Give a file, or a trigger that comes along with --shipped"),
        Line("triggers set --shipped all", 64, "There is no trigger \"all\"", "chat, latest-message"),
        Line("triggers set @list.json", 64, "'@list.json' holds no JSON object, e.g. {\"id\":"),
        Line("triggers set -", 64, "stdin is not valid JSON: the text ends in the middle of a value (byte 0)"),
        Line("triggers set @no-title.json", 64, "'@no-title.json': ", "'actions' is no known parameter"),
        Line("triggers test chat /a.b", 64, "The key \"a.b\" contains \".\""),
        Line("triggers test chat /a --type new", 64, "--type new: give one of created, updated, deleted"),
        Line("triggers test chat /a --after text", 64, "--after is not valid JSON"),
        Line("triggers test chat /a --before @@none", 74, "cannot read '@none': no such file"),
    ]

    /// Refused by the service of a stack.
    static let refused = [
        Line("devices register ftp://a/ --uid u1", 1, "url"),
        Line("devices register https://example.com/", 1, "uid"),
        Line("devices register --apns-token-file @apns --uid u1", 1, "has no credentials for apns"),
        Line("devices register --email --uid u1", 1, "an ID token that has a verified address"),
        Line("devices register http://127.0.0.1:1/ --secret-file @secret --uid u1", 1, "whsec_"),
        Line("devices register http://127.0.0.1:1/ --environment sandbox --uid u1", 1, "has no environment"),
        Line("devices unregister dev_none", 1, "dev_none"),
        Line("devices list --limit 0", 1, "limit"),
        Line("devices list --token-file @fcm", 77, "ID token"),
        Line("apps resume none", 1, "none"),
        Line("apps reload --token-file @id-token", 77, "dministrator"),
        Line("send --to u1", 1, "title"),
        Line("send --to u1 --title t --ttl 0", 1, "ttlSeconds"),
        Line("send --to u1 --title t --badge 100000", 1, "badge"),
        Line("send --to u1 --title t --link http://a/", 1, "options.link"),
        Line("send --to u1 --type none", 1, "none"),
        Line("send --to u1 --title t --category none", 1, "none"),
        Line("send --to u1 --title t --summary photos", 1, "{count}"),
        Line("send --device dev_none --title t", 1, "dev_none"),
        Line("send --device-tokens-file @tokens --platform email --title t", 1, "platform"),
        Line("outbox show ntf_none", 1, "ntf_none"),
        Line("dead replay", 1, "deliveries"),
        Line("dead drop d --all", 1, "deliveries"),
        Line("preferences get", 1, "uid"),
        Line("preferences set --uid u1 --time-zone Mars", 1, "timeZone is an IANA time zone"),
        Line("badges set 100000 --uid u1 --thread c1", 1, "count"),
        Line("badges get", 1, "uid"),
        Line("topics subscribe news", 1, "uid"),
        Line("quick-replies get", 1, "as"),
        Line("respond ntf_none opened --token-file @id-token", 1, "ntf_none"),
        Line("respond ntf_none opened --reply-token-file @reply", 77, "reply"),
        Line("types remove none", 1, "none"),
        Line("categories remove none", 1, "none"),
        Line("triggers remove none", 1, "none"),
    ]
}
