//! Long chains and any input.

use super::*;

#[test]
fn the_middle_of_long_chains_is_omitted_and_counted() {
    let mut steps = Steps::default();
    for at in 0..2 * MAX_STEPS as u64 + 7 {
        steps.push(Step::new(at, Kind::NumaGroup, None, at.to_string()));
    }
    let (kept, dropped) = steps.finish();
    assert_eq!((kept.len(), dropped), (2 * MAX_STEPS, Some((MAX_STEPS, 7))));
    assert_eq!((kept[MAX_STEPS - 1].at, kept[MAX_STEPS].at), (MAX_STEPS as u64 - 1, MAX_STEPS as u64 + 7));
}

proptest! {
    /// Every fault of a page is a step of its chain or one of several alike; the answer has the node of the last.
    #[test]
    fn a_pages_chain_has_all_of_its_faults(
        faults in prop::collection::vec((0..4u64, 0..2i64, any::<bool>(), any::<bool>(), 0..Rule::ALL.len()), 1..60),
        page in 0..4u64,
    ) {
        let mut stream = Stream::twin(vec![mapping(10, 3, "one/heap")]);
        let (mut nodes, mut frames) = ([0i64; 4], [10i64, 20, 30, 40]);
        for (at, &(of, dst, wanted, done, rule)) in faults.iter().enumerate() {
            let number = of as usize;
            let (src, before) = (nodes[number], frames[number]);
            let wanted = wanted && src != dst;
            if wanted && done {
                (nodes[number], frames[number]) = (dst, before + 1);
            }
            let rule = Rule::ALL[rule];
            stream.events.push(fault(at as u64, 10, of, (src, dst), rule, wanted, [before, frames[number]]));
        }
        let own = faults.iter().filter(|(of, ..)| *of == page).count() as u64;
        let chain = stream.explain(offset(page));
        prop_assert_eq!(chain.steps.iter().map(|step| step.times).sum::<u64>(), own);
        prop_assert!(chain.steps.windows(2).all(|pair| pair[0].until <= pair[1].at));
        let start = match own {
            0 => "It had no hinting fault".to_string(),
            _ => format!("It is on node {}, frame {:#x}", nodes[page as usize], frames[page as usize]),
        };
        prop_assert!(chain.answer.starts_with(&start), "{}", chain.answer);
    }

    /// Events with any numbers in their fields, of a damaged file say.
    #[test]
    fn any_numbers_are_explained(
        rows in prop::collection::vec((0..mmtwin_event::vocabulary::SCHEMAS.len(), prop::collection::vec(any::<i64>(), 24)), 0..40),
        small in any::<bool>(),
    ) {
        let mut stream = Stream::twin(Vec::new());
        for (at, (kind, numbers)) in rows.iter().enumerate() {
            let schema = &mmtwin_event::vocabulary::SCHEMAS[*kind];
            let made = EventBuilder::new(schema.kind).at(at as u64).pid(10);
            let value = |slot: usize| if small { numbers[slot] & 15 } else { numbers[slot] };
            let set = |made: EventBuilder, (slot, field): (usize, &mmtwin_event::vocabulary::FieldSchema)| made.set(field.name, value(slot));
            stream.events.push(schema.fields.iter().enumerate().fold(made, set));
        }
        for asked in [Query::Task("10".into()), Query::Frame(9), Query::Group("9".into()), Query::Address("10".into(), 9), Query::Offset("r".into(), 0)] {
            let mut names = Names::new(&asked);
            stream.give(&mut names);
            if let Ok(subject) = names.find() {
                let mut explain = Explain::new(&names, subject);
                stream.give(&mut explain);
                prop_assert!(!explain.chain().answer.is_empty());
            }
        }
    }
}
