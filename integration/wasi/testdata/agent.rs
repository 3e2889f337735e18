use std::{env, fs, thread, time::{Duration, SystemTime}};

mod tapedeck {
    #[link(wasm_import_module = "tapedeck")]
    extern "C" {
        #[link_name = "llm.complete"]
        fn llm_complete(arguments: *const u8, length: usize) -> i32;
        #[link_name = "process.run"]
        fn process_run(arguments: *const u8, length: usize) -> i32;
        fn take(address: *mut u8);
    }

    fn call(function: unsafe extern "C" fn(*const u8, usize) -> i32, arguments: &str) -> Result<String, String> {
        let n = unsafe { function(arguments.as_ptr(), arguments.len()) };
        let mut answer = vec![0; n.unsigned_abs() as usize];
        unsafe { take(answer.as_mut_ptr()) };
        let answer = String::from_utf8(answer).expect("JSON is UTF-8");
        if n < 0 { Err(answer) } else { Ok(answer) }
    }

    /// Both take a JSON object, and return JSON or the text of an error.
    pub fn complete(arguments: &str) -> Result<String, String> { call(llm_complete, arguments) }
    pub fn run(arguments: &str) -> Result<String, String> { call(process_run, arguments) }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("{}", tapedeck::complete(r#"{"messages":[{"role":"user","content":"What changed?"}]}"#)?);
    println!("{}", tapedeck::run(r#"{"program":"git","args":["status","--short"]}"#)?);

    let before = SystemTime::now();
    thread::sleep(Duration::from_secs(24 * 60 * 60));
    println!("{}, {}: {} s later", env::args().last().unwrap(), env::var("MODE")?, before.elapsed()?.as_secs());

    fs::write("report.md", "# Done\n")?;
    Ok(())
}
