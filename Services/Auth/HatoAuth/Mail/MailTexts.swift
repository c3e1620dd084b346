import HatoModel

/// A text of mails, named as the file that replaces it.
enum MailText: String, Sendable, CaseIterable {
    case verifyEmail
    case passwordReset
    /// For the holder of an address with which a new account was to be made (`signUpAlwaysAccepts`).
    case accountExists
    case signIn
    case changeEmail
    case invite
    case recoverEmail

    init(_ type: Auth.CodeType) {
        switch type {
        case .verifyEmail: self = .verifyEmail
        case .passwordReset: self = .passwordReset
        case .signIn: self = .signIn
        case .changeEmail: self = .changeEmail
        case .invite: self = .invite
        case .recoverEmail: self = .recoverEmail
        }
    }

    /// Of the code that it brings.
    var type: Auth.CodeType {
        switch self {
        case .verifyEmail: .verifyEmail
        case .passwordReset, .accountExists: .passwordReset
        case .signIn: .signIn
        case .changeEmail: .changeEmail
        case .invite: .invite
        case .recoverEmail: .recoverEmail
        }
    }
}

/// The texts that come with the service.
enum MailTexts {
    static let english: [MailText: String] = [
        .verifyEmail: """
        Confirm your e-mail address

        To confirm that {{email}} is your address, enter this number:
        {{#digits}}

        {{digits}}

        It is valid for {{minutes}} minutes.
        {{/digits}}
        {{#link}}

        Or open this link:
        {{link}}
        {{/link}}

        If you did not ask for this, ignore this mail.

        {{app}}

        """,
        .passwordReset: """
        Set a new password

        To set a new password for the account with {{email}}, enter this number:
        {{#digits}}

        {{digits}}

        It is valid for {{minutes}} minutes.
        {{/digits}}
        {{#link}}

        Or open this link:
        {{link}}
        {{/link}}

        If you did not ask for this, ignore this mail: the password stays as it is.

        {{app}}

        """,
        .accountExists: """
        You have an account already

        {{email}} was entered to make an account, but there is one with it. If this was you, sign in. To set a new
        password, enter this number:
        {{#digits}}

        {{digits}}

        It is valid for {{minutes}} minutes.
        {{/digits}}
        {{#link}}

        Or open this link:
        {{link}}
        {{/link}}

        If it was not you, ignore this mail: the account stays as it is.

        {{app}}

        """,
        .signIn: """
        Sign in

        To sign in with {{email}}, enter this number:
        {{#digits}}

        {{digits}}

        It is valid for {{minutes}} minutes.
        {{/digits}}
        {{#link}}

        Or open this link:
        {{link}}
        {{/link}}

        If you did not ask for this, ignore this mail, and do not pass the number on.

        {{app}}

        """,
        .changeEmail: """
        Confirm your new e-mail address

        To change the address of the account{{#oldEmail}} with {{oldEmail}}{{/oldEmail}} to {{newEmail}}, enter this
        number:
        {{#digits}}

        {{digits}}

        It is valid for {{minutes}} minutes.
        {{/digits}}
        {{#link}}

        Or open this link:
        {{link}}
        {{/link}}

        If you did not ask for this, ignore this mail.

        {{app}}

        """,
        .invite: """
        Your new account

        There is an account for you with {{email}}. To set its password, enter this code:

        {{code}}
        {{#link}}

        Or open this link:
        {{link}}
        {{/link}}

        The code is valid for 7 days.

        {{app}}

        """,
        .recoverEmail: """
        Your e-mail address was changed

        The address of your account was changed from {{email}} to another one. If this was not you, bring it back
        with this code:

        {{code}}
        {{#link}}

        Or open this link:
        {{link}}
        {{/link}}

        The code is valid for 7 days. If it was you, ignore this mail.

        {{app}}

        """,
    ]

    static let japanese: [MailText: String] = [
        .verifyEmail: """
        メールアドレスの確認

        {{email}} がご自身のアドレスであることを確認するため、次の番号を入力してください。
        {{#digits}}

        {{digits}}

        この番号は{{minutes}}分間有効です。
        {{/digits}}
        {{#link}}

        または、次のリンクを開いてください。
        {{link}}
        {{/link}}

        お心当たりのない場合は、このメールを無視してください。

        {{app}}

        """,
        .passwordReset: """
        パスワードの再設定

        {{email}} のアカウントのパスワードを再設定するには、次の番号を入力してください。
        {{#digits}}

        {{digits}}

        この番号は{{minutes}}分間有効です。
        {{/digits}}
        {{#link}}

        または、次のリンクを開いてください。
        {{link}}
        {{/link}}

        お心当たりのない場合は、このメールを無視してください。パスワードは変わりません。

        {{app}}

        """,
        .accountExists: """
        すでにアカウントがあります

        {{email}} で新規登録の操作がありましたが、このアドレスのアカウントはすでにあります。ご自身の場合は、ログインしてください。パスワードを再設定するには、次の番号を入力してください。
        {{#digits}}

        {{digits}}

        この番号は{{minutes}}分間有効です。
        {{/digits}}
        {{#link}}

        または、次のリンクを開いてください。
        {{link}}
        {{/link}}

        お心当たりのない場合は、このメールを無視してください。アカウントは変わりません。

        {{app}}

        """,
        .signIn: """
        ログイン

        {{email}} でログインするには、次の番号を入力してください。
        {{#digits}}

        {{digits}}

        この番号は{{minutes}}分間有効です。
        {{/digits}}
        {{#link}}

        または、次のリンクを開いてください。
        {{link}}
        {{/link}}

        お心当たりのない場合は、このメールを無視してください。番号を他の人に教えないでください。

        {{app}}

        """,
        .changeEmail: """
        新しいメールアドレスの確認

        {{#oldEmail}}{{oldEmail}} の{{/oldEmail}}アカウントのメールアドレスを {{newEmail}} に変更するには、次の番号を入力してください。
        {{#digits}}

        {{digits}}

        この番号は{{minutes}}分間有効です。
        {{/digits}}
        {{#link}}

        または、次のリンクを開いてください。
        {{link}}
        {{/link}}

        お心当たりのない場合は、このメールを無視してください。

        {{app}}

        """,
        .invite: """
        アカウントへのご招待

        {{email}} のアカウントが用意されました。パスワードを設定するには、次のコードを入力してください。

        {{code}}
        {{#link}}

        または、次のリンクを開いてください。
        {{link}}
        {{/link}}

        このコードは7日間有効です。

        {{app}}

        """,
        .recoverEmail: """
        メールアドレスが変更されました

        アカウントのメールアドレスが {{email}} から別のアドレスに変更されました。お心当たりのない場合は、次のコードで元に戻せます。

        {{code}}
        {{#link}}

        または、次のリンクを開いてください。
        {{link}}
        {{/link}}

        このコードは7日間有効です。ご自身で変更された場合は、このメールを無視してください。

        {{app}}

        """,
    ]
}
