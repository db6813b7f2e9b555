//! Reads what the words of an error mean.
//!
//! Servers phrase one condition in dozens of ways, so a meaning is a combination of features: what
//! the text speaks of, and what it says about that. A feature is a list of beginnings of words.

use super::Code;

/// Characters of an error that are read.
const MOST: usize = 4_000;

/// Lower-case words between single spaces.
pub(super) struct Words(String);

type Rule = (fn(&Words) -> bool, Code);

impl Words {
    pub(super) fn new(text: &str) -> Self {
        let mut words = String::from(" ");
        for c in text.chars().take(MOST).flat_map(char::to_lowercase) {
            if c.is_alphanumeric() || matches!(c, '_' | '<') {
                words.push(c);
            } else if !words.ends_with(' ') {
                words.push(' ');
            }
        }
        words.push(' ');
        Self(words)
    }

    /// The code that the words give, if it is more precise than the known one.
    pub(super) fn refine(&self, known: Option<&Code>) -> Option<Code> {
        const REQUEST: &[Rule] = &[
            (Words::refuses_thinking, Code::ThinkingRefused),
            (Words::names_another_route, Code::WrongRoute),
            (Words::lacks_tools, Code::ToolsUnsupported),
            (Words::is_too_large, Code::Context),
            (Words::is_full, Code::Context),
            (Words::is_spent, Code::Quota),
        ];
        const UNKNOWN: &[Rule] = &[
            (Words::lacks_the_model, Code::ModelNotFound),
            (Words::refuses_the_key, Code::Unauthorized),
            (Words::limits_the_rate, Code::RateLimited),
            (Words::is_overloaded, Code::Overloaded),
        ];
        let (rules, more): (&[Rule], &[Rule]) = match known {
            None => (REQUEST, UNKNOWN),
            Some(Code::BadRequest | Code::ServerError | Code::ModelNotFound) => (REQUEST, &[]),
            Some(Code::TooLarge) => (&REQUEST[3..5], &[]),
            Some(Code::RateLimited) => (&REQUEST[3..4], &REQUEST[5..]),
            Some(Code::Forbidden) => (&REQUEST[5..], &[]),
            Some(_) => return None,
        };
        let mut rules = rules.iter().chain(more);
        rules
            .find(|(holds, _)| holds(self))
            .map(|(_, code)| code.clone())
    }

    /// Places of words that begin with one of the phrases, which `|` separates.
    fn places(&self, phrases: &'static str) -> impl Iterator<Item = usize> {
        let begins = |at: &usize, phrase: &str| !phrase.is_ascii() || self.0[..*at].ends_with(' ');
        phrases.split('|').flat_map(move |phrase| {
            let found = self.0.match_indices(phrase).map(|(at, _)| at);
            found.filter(move |at| begins(at, phrase))
        })
    }

    fn says(&self, phrases: &'static str) -> bool {
        self.places(phrases).next().is_some()
    }

    fn says_close(&self, phrases: &'static str, others: &'static str) -> bool {
        const CLOSE: usize = 40;
        let mut places = self.places(phrases);
        places.any(|at| self.places(others).any(|other| at.abs_diff(other) < CLOSE))
    }

    fn numbers(&self) -> impl Iterator<Item = u64> {
        self.0.split(' ').filter_map(|word| word.parse().ok())
    }

    /// The number that follows a word.
    fn number_after(&self, word: &'static str) -> Option<u64> {
        let mut places = self.places(word).map(|at| &self.0[at + word.len()..]);
        places.find_map(|rest| {
            let figures = rest
                .trim_start_matches([' ', 's'])
                .trim_start_matches("of ");
            let end = figures.find(|c: char| !c.is_ascii_digit() && c != ' ');
            // `30,000` became two words.
            figures[..end.unwrap_or(figures.len())]
                .replace(' ', "")
                .parse()
                .ok()
        })
    }

    /// Whether the request alone is more than a limit of its rate or plan allows.
    fn is_too_large(&self) -> bool {
        let asked = self.number_after("requested");
        let more = asked.zip(self.number_after("limit"));
        more.is_some_and(|(asked, limit)| asked > limit && limit > 0)
            || self.says("long context|extra usage") && self.says("require|need")
    }

    /// Whether the conversation is longer than the model's context.
    fn is_full(&self) -> bool {
        const WINDOW: &str = "context length|context_length|context window|context_window|\
            context size|context_size|context limit|context exceed|context overflow|context too|\
            context when|context cache|contextlength|max context|maximum context|model context|\
            n_ctx|model length|model_len|max_model_len|max_seq|sequence length|max sequence|上下文";
        const SAID: &str = "prompt |prompts |input |inputs |inputtext|message |messages |\
            conversation|history|chat |query |question|sequence|提示|输入|对话|消息|文本|问题|请求";
        const EXCESS: &str = "exceed|too long|too large|too big|too many|too much|too small|longer|\
            larger|greater|bigger|more than|over |overflow|reduce|shorten|shorter|truncat|max|\
            limit|less than|must be <|range of|at most|not enough|fit |cannot be enqueued|超|过长|\
            太长|上限|最大|大于|溢出|限制";
        const SIZE: &str = "long|length|size|larg|big|maxlength|character|token|字|长|超";
        // What the reply may take is another matter, unless the conversation fills the window.
        const OUTPUT: &str = "max_tokens|max_completion_tokens|max_output_tokens|max_new_tokens|\
            maxtokens|maxoutputtokens|maxtokencount|num_predict|n_predict|output tokens|output_tokens|\
            completion tokens|completion_tokens|maximum tokens you|maximum tokens value|budget_tokens|\
            thinking budget|thinking_budget|thinkingbudget";
        const OTHER: &str = "image|pdf|file|attachment|audio|video|schema|name|tool|function|meta|\
            stop|logit|header|url|cache|prompt_cache|description|string|array|item|extra input|\
            input should|not permitted|batch|embedding|byte|mb |kb |payload|property|user_id";
        const CREDENTIAL: &str = "expire|access token|api token|auth|bearer|jwt|refresh token|login|\
            unexpected token|stop token|special token|token_id|logit|logprob|cache|in json";
        if self.limits_the_rate() {
            return false;
        }
        let (input, output) = (
            self.places(SAID).chain(self.places("context")).min(),
            self.places(OUTPUT).min(),
        );
        if let Some(output) = output
            && input.is_none_or(|input| output < input)
        {
            let mut told = self.numbers().skip(1);
            let filled = told.next().zip(told.next());
            let fills = |(limit, used): (u64, u64)| limit / 2 < used && used / 4 < limit;
            return input.is_some() && filled.is_some_and(fills);
        }
        let tokens =
            "token count|token limit|token length|number of token|input token|prompt token";
        let tokens = self.0.contains("tokens") || self.0.contains("token 数") || self.says(tokens);
        self.says(EXCESS)
            && (self.says(WINDOW) && !self.says("unknown|unrecognized|not permitted")
                || tokens && !self.says(CREDENTIAL)
                || self.says(SAID) && self.says(SIZE) && !self.says(OTHER))
    }

    /// Whether an account is empty, or a quota of a day or longer used up.
    fn is_spent(&self) -> bool {
        let money = "balance|credit|funds|prepa|arrear|余额|欠费|账户";
        let lack = "insufficient|not enough|no balance|no credit|too low|exhaust|out of|deplet|\
            negative|ran out|run out|used up|unpaid|overdue|require|can only afford|不足|用尽|欠";
        let span = "per day|day |daily|perday|per month|monthly|weekly|per week|rpd|tpd|tomorrow|\
            每日|每天|每月|今日|当日";
        let used = "limit|quota|exceed|reach|used up|额度|上限|次数|超";
        self.says(money) && self.says(lack)
            || self.says("usage limit|spend limit|spending limit|spend cap|billing hard|account is suspended|arrearage|欠费")
            || self.says("current quota") && !self.says("metric|retry")
            || self.says(span) && self.says(used) && !self.says("per min|tpm|rpm|每分钟")
    }

    /// Whether thinking or reasoning of earlier turns, which only its server can read, is refused.
    fn refuses_thinking(&self) -> bool {
        let thinking = "thinking block|thinking_block|redacted_thinking|redacted thinking|\
            thought_signature|thoughtsignature|thought signature|encrypted_content|\
            encrypted content|encrypted reasoning|reasoning item|reasoning_content|\
            reasoning content|reasoning_details|type reasoning|rs_|reasoning block|思考";
        let signed = self.says("signature|签名") && self.says("thinking|thought|reasoning|思考");
        let wrong = "invalid|not found|missing|require|without|cannot|could not|can not|must|modif|\
            corrupt|mismatch|match|expected|different|fail|unable|not valid|unsupported|decrypt|\
            verif|pars|not belong|unknown|not permitted|缺|回传|无效|失败|必须";
        (signed || self.says(thinking))
            && self.says(wrong)
            && !self.says("budget|tool_choice|temperature|top_p|include ")
    }

    /// Whether the model, or this request, needs another route of the API.
    fn names_another_route(&self) -> bool {
        let responses = "v1 responses|responses api|responses endpoint|responses route|\
            responses operation|use responses|responses instead|via responses|through responses";
        let lacks = "not support|t support|unsupported|only support|only available|only work|\
            not available|not accessible|instead|not compatible|require|use |not work|must";
        self.says("unexpected endpoint|unsupported_api|unsupported api|unknown request url|invalid url|not accessible via")
            || self.says(responses) && self.says(lacks) && !self.says("moved|parameter")
    }

    fn lacks_tools(&self) -> bool {
        let tools = "tools|tool use|tool_use|tool calling|tool call |tool calls |function calling|\
            function call |function calls|functions |工具调用|函数调用";
        let lacks = "not support|t support|unsupported|not enabled|not available|no support|\
            not implemented|requires jinja|不支持";
        let detail = "parallel|too many|schema|strict|type |mime|json mode|response_format|image|\
            result|message|web_search|hosted|keyword|propert|format|streaming tool";
        self.says("enable auto tool choice|endpoints found that support tool")
            || self.says_close(tools, lacks) && !self.says(detail)
    }

    /// Whether the text speaks of a model at all; one about a missing route does not.
    pub(super) fn speaks_of_a_model(&self) -> bool {
        self.says("model|deployment|endpoints found|publisher|engine|function|adapter|lora|模型")
    }

    fn lacks_the_model(&self) -> bool {
        self.speaks_of_a_model() && self.says("not found|not exist|no such|unknown model|不存在")
    }

    fn refuses_the_key(&self) -> bool {
        let key = "api key|api_key|apikey|token |key |令牌|密钥|credential";
        let wrong = "invalid|incorrect|missing|expired|not valid|no |无效|过期|错误|disabled";
        self.says("unauthorized|unauthenticated|not authenticated|authentication fail")
            || self.says_close(key, wrong)
    }

    fn limits_the_rate(&self) -> bool {
        self.says(
            "rate limit|rate_limit|ratelimit|per min|per sec|per hour|per day|per month|daily|monthly|\
             tpm |rpm |tpd |rpd |throttl|quota|too many requests|too frequent|限流|频率|频繁|并发",
        )
    }

    fn is_overloaded(&self) -> bool {
        self.says(
            "overload|at capacity|no capacity|busy|temporarily unavailable|high demand|负载|繁忙",
        )
    }
}

#[cfg(test)]
mod tests;
