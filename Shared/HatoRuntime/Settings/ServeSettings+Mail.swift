extension ServeSettings {
    /// Where the mails of auth go and what they say; settings of services that have auth.
    public static let mail = [
        Setting(
            "mail-url", .text,
            help:
                "SMTP server for mails: smtp://USER@HOST:587 (STARTTLS) or smtps://USER@HOST:465; unless set, there are none"
        ),
        Setting(
            "mail-password-file", .file,
            help: "file with the password of the user in mail-url, on its first line"),
        Setting(
            "mail-tls", .choice(["required", "none"]), default: "required",
            help: "whether the connection to the server is encrypted; none for a server on this machine only"),
        Setting(
            "mail-authority-file", .file,
            help: "file with the certificates of the authorities that the mail server is trusted with, in PEM; "
                + "unless set, those of the operating system"),
        Setting("mail-from", .text, help: "sender of mails, such as Chat <chat@example.com>"),
        Setting(
            "mail-templates", .file,
            help: "folder with texts of mails in place of those of the service: ja/passwordReset.mustache and so on"),
        Setting(
            "mail-locale", .text, default: "en", help: "language of mails whose request names none, such as ja"),
        Setting("mailbox", .file, help: "folder that gets the mails instead of a server, for tests"),
        Setting(
            "action-url", .text,
            help: "URL of the page that takes the codes of links in mails; unless set, there are no links"
        ),
    ]
}
