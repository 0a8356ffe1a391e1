//! `blockyard ls`: lists containers, blobs and local files.

use std::ffi::OsString;
use std::path::Path;

use clap::Args;

use crate::cli::output::print;
use crate::cli::output::warn;
use crate::protocol::azure::answers::Listed;

use super::connect::ConnectArgs;
use super::connect::Login;
use super::error::FilesError;
use super::listing::Listing;
use super::local::Entries;
use super::local::Local;
use super::place::Named;
use super::place::Place;
use super::place::Remote;
use super::service::Service;
use super::show;
use super::show::Style;

/// Bytes of lines that are printed together.
const TOGETHER: usize = 32 << 10;
/// Entries of local folders that are read together.
const WALKED: usize = 256;

/// Arguments of `ls`.
#[derive(Args, Debug)]
pub struct LsArgs {
    /// An account, a container, a folder in it or a blob, as a URL or by://CONTAINER/FOLDER; or a
    /// local path
    #[arg(value_name = "PLACE", default_value = "by://")]
    pub place: OsString,
    /// List everything below, not one level
    #[arg(long, short)]
    pub recursive: bool,
    /// Print a JSON object for each container, folder, blob or file
    #[arg(long)]
    pub json: bool,
    /// The endpoint and the account.
    #[command(flatten)]
    pub connect: ConnectArgs,
}

/// Lines that are printed some at a time.
#[derive(Default)]
struct Lines(String);

impl Lines {
    fn add(&mut self, line: &str) -> Result<(), FilesError> {
        self.0.push_str(line);
        if self.0.len() >= TOGETHER { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), FilesError> {
        let text = std::mem::take(&mut self.0);
        print(&text).map_err(|error| FilesError::Wrong(error.to_string()))
    }
}

/// Runs `blockyard ls`.
///
/// # Errors
/// [`FilesError`].
pub(in crate::cli) async fn ls(args: &LsArgs) -> Result<(), FilesError> {
    let login = Login::new(&args.connect.login)?;
    let place = Place::parse(&args.place, &login)?.named()?;
    let service = Service::new(&args.connect)?;
    let style = Style::of(args.json);
    let mut lines = Lines::default();
    let listed = match place {
        Named::Remote(place) if place.container.is_none() => {
            containers(&service, &place, style, &mut lines).await
        }
        Named::Remote(place) => blobs(&service, &place, args.recursive, style, &mut lines).await,
        Named::Local(path) => files(&service, &path, args.recursive, style, &mut lines).await,
    };
    // Entries that were found before an error are shown too.
    lines.flush()?;
    listed
}

async fn containers(
    service: &Service,
    place: &Remote,
    style: Style,
    lines: &mut Lines,
) -> Result<(), FilesError> {
    let mut marker = None;
    loop {
        let page = service.list_containers(&place.endpoint, marker.as_deref()).await?;
        for item in &page.items {
            lines.add(&show::container(style, item))?;
        }
        marker = page.next;
        if marker.is_none() {
            return Ok(());
        }
    }
}

/// Lists the blobs below a folder, or the blob of that name.
async fn blobs(
    service: &Service,
    place: &Remote,
    recursive: bool,
    style: Style,
    lines: &mut Lines,
) -> Result<(), FilesError> {
    let prefix = place.prefix();
    let mut list = Listing::new(place, prefix.clone(), !recursive);
    let mut is_empty = true;
    while let Some(entry) = list.next(service).await? {
        is_empty = false;
        lines.add(&match &entry {
            Listed::Blob(blob) => show::blob(style, blob, &prefix),
            Listed::Folder(name) => show::folder(style, name, &prefix),
        })?;
    }
    if is_empty && !prefix.is_empty() {
        let answer = service.properties(place).await?;
        let blob = super::blobs::facts(&place.name, &answer);
        lines.add(&show::blob(style, &blob, ""))?;
    }
    Ok(())
}

/// Lists the files in a folder, or the file of that name.
async fn files(
    service: &Service,
    path: &Path,
    recursive: bool,
    style: Style,
    lines: &mut Lines,
) -> Result<(), FilesError> {
    let root = path.to_owned();
    let found = service.on_disk(path, move || Local::at(&root)).await?;
    if !found.is_folder() {
        return lines.add(&show::local(style, &found, ""));
    }
    let below = found.name();
    let root = path.to_owned();
    let mut entries = service.on_disk(path, move || Entries::new(&root, recursive)).await?;
    let (mut failed, mut all) = (0, 0);
    loop {
        let found;
        (entries, found) = service
            .on_disk(path, move || {
                let found = entries.next(WALKED);
                Ok((entries, found))
            })
            .await?;
        if found.is_empty() {
            break;
        }
        for entry in found {
            all += 1;
            match entry {
                Ok(entry) => lines.add(&show::local(style, &entry, &below))?,
                Err(unreadable) => {
                    failed += 1;
                    drop(warn(&format!("blockyard: {unreadable}\n")));
                }
            }
        }
    }
    match failed {
        0 => Ok(()),
        failed => Err(FilesError::Unread { failed, all }),
    }
}
